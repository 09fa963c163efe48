"""What an app needs: pairs in memory, chats, comparisons, adaptation, and the same for the visitors of a
public app."""
