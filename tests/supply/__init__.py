"""What reaches a user: the wheel, its dependencies, its types, its licences."""
