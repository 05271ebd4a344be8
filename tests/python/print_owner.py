import flarena

print("owner", flarena.stats()["owner"])
