"""Files that bring an overlay to several hosts: systemd units, a compose file, Kubernetes manifests."""
