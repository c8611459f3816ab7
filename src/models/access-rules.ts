import { matchNames } from '#lib/name-patterns.ts'

/** The models of a name or pattern are for these groups. */
export type AccessRule = { readonly models: string; readonly groups: readonly string[] }

export type Groups = ReadonlySet<string>

/** Reads the groups of all rules that name a model by one of its names; undefined: no rule does. */
export function compileAccessRules(
  rules: readonly AccessRule[],
  spellingsOf: (name: string) => readonly string[] = (name) => [name],
): (modelNames: readonly string[]) => Groups | undefined {
  const compiled = rules.map(({ models, groups }) => {
    return { matches: matchNames(spellingsOf(models)), groups }
  })
  return (modelNames) => {
    const naming = compiled.filter(({ matches }) => modelNames.some(matches))
    return naming.length === 0 ? undefined : new Set(naming.flatMap(({ groups }) => groups))
  }
}
