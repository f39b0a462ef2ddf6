"""Clusters of brokers: by size and by domain, with edge brokers. Of `topologies` it may import the modules at its top,
and no other subpackage.
"""

from topologies.clustering.clusters import cluster_by_domain, cluster_by_size, join_unshared_links

__all__ = ["cluster_by_domain", "cluster_by_size", "join_unshared_links"]
