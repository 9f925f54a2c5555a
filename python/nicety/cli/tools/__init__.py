"""Commands about cards and what runs on their processors."""
