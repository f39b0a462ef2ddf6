"""Files that deploy an overlay on several hosts: `mercast deploy` writes systemd units, a compose file or Kubernetes
manifests. Of the broker packages it may import config and security.
"""
