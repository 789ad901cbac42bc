"""Does the default test hold its level? Rates of false rejections where the hypothesis is true."""
