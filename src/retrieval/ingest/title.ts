const titleCharsMax = 100

/** A file name without its extension, which passages are embedded with. */
export function titleOf(name: string): string {
  return name.replace(/\.[A-Za-z0-9]{1,8}$/, '').slice(0, titleCharsMax)
}
