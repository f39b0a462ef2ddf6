"""The demo, `mercast demo`: one workload under three protocols, analysed with Spark. Of `experiments` it may import
analysis, figures, report and sweeps.
"""
