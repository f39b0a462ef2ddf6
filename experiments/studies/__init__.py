"""Studies of routing without simulated time: destination lists, memory, reorganisation."""
