"""Routing: the routers FBR, D-DBR, MERC and flooding. They keep tables and make routing decisions, without a clock."""
