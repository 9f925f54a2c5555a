"""Commands about cards, and about programs on their processors."""
