"""Studies of routing that need no event simulation: destination lists, memory, reorganisation."""
