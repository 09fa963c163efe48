"""The services of the app: pairs in memory, chats, comparisons, adaptation, and visitors' rights to them."""
