"""The demo: one workload under three protocols, analysed with Spark."""
