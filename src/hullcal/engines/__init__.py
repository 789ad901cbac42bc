"""Who evaluates a batch of weights over the rows."""
