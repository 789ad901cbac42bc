"""How do time and memory of a test grow with rows, classes, members, threads and workers?"""
