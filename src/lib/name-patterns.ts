/** Whether a name is in a list of names and patterns. */
export type NameMatcher = (name: string) => boolean

/** In a pattern, `*` stands for any characters; everything else for itself. Case counts. */
export function matchNames(patterns: readonly string[]): NameMatcher {
  const names = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const wildcards = patterns
    .filter((pattern) => pattern.includes('*'))
    .map((pattern) => pattern.split('*'))
  return (name) => names.has(name) || wildcards.some((parts) => isMatch(name, parts))
}

/** Each part at its first place: linear in the name, unlike the backtracking of an expression. */
function isMatch(name: string, parts: readonly string[]): boolean {
  const first = parts[0] ?? ''
  const last = parts.at(-1) ?? ''
  const end = name.length - last.length
  if (first.length > end || !name.startsWith(first) || !name.endsWith(last)) return false
  let from = first.length
  for (const part of parts.slice(1, -1)) {
    const at = name.indexOf(part, from)
    if (at === -1 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}
