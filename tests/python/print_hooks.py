import sys

finders = [finder for finder in sys.meta_path if type(finder).__name__ == "HookFinder"]
heavy = sorted({"ctypes", "json", "flarena._native", "flarena._nvflare"} & set(sys.modules))
print(len(finders), ",".join(heavy) or "light", "nvflare" in sys.modules)
