"""Routing: which broker hears of what. FBR, D-DBR, MERC and flooding as tables and decisions, without a clock."""
