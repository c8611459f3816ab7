export const scopeNames = ['inference', 'files', 'speech', 'admin'] as const

/** The kinds of endpoints that an API key can be restricted to. */
export type Scope = (typeof scopeNames)[number]

/** Without duplicates and unknown names, in the order of their documentation. */
export function sortScopes(scopes: readonly string[]): Scope[] {
  return scopeNames.filter((name) => scopes.includes(name))
}
