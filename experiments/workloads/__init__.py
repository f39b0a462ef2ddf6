"""Workloads: seeded generators of subscriptions and publications, by name.

    workload = create(BeGenParameters(dimensions=300), subscriptions=20_000, publications=100, seed=1)
    for expression in workload.subscriptions(): …
    for publication in workload.publications(): …

The same seed gives the same workload on any machine. Each call of `subscriptions` or `publications` starts over.
"""
