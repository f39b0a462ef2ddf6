"""Many runs: their parameters, their results on disk, and their distribution over processes or Spark."""
