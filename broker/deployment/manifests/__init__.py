"""Files that deploy an overlay on several hosts: systemd units, compose files, Kubernetes manifests."""
