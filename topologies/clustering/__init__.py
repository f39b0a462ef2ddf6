"""Clusters of brokers: by size and by domain, with edge brokers."""
