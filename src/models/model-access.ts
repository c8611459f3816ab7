import type { Target } from '#inference/upstream.ts'
import { matchNames, type NameMatcher } from '#lib/name-patterns.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { setBounded } from '#lib/single-flight.ts'
import { type AccessRule, compileAccessRules, type Groups } from './access-rules.ts'
import type { Model } from './catalogue.ts'
import type { ModelNames } from './names.ts'

export type ModelAccess = ReturnType<typeof createModelAccess>

/** Models whose groups are known by the current rules. */
const modelsCachedMax = 10_000

/**
 * Decides which models exist for a principal: those that a group of the user may use, by the
 * configuration and by `rules`, which change at run time; and of these, with an API key, those on the
 * list of the key.
 */
export function createModelAccess(
  names: Pick<ModelNames, 'spellings' | 'ofModel'>,
  rules: () => readonly AccessRule[],
) {
  const groupsOf = createRuleReader(names, rules)
  /** By the list of a cached credential. */
  const matchers = new WeakMap<readonly string[], NameMatcher>()
  const matcherOf = (list: readonly string[]): NameMatcher => {
    const known = matchers.get(list)
    if (known !== undefined) return known
    const matches = matchNames(list.flatMap(names.spellings))
    matchers.set(list, matches)
    return matches
  }

  /** Whether the list of the API key, if there is one, has one of the names of a model. */
  const isListed = ({ credential }: RequestPrincipal, modelNames: readonly string[]): boolean => {
    const list = credential?.models ?? null
    return list === null || modelNames.some(matcherOf(list))
  }
  const isOpen = (principal: RequestPrincipal, id: string, aliases: readonly string[]): boolean => {
    const modelNames = [id, names.ofModel(id), ...aliases]
    return isListed(principal, modelNames) && isMember(principal, groupsOf(id, modelNames))
  }
  const isUsable = (principal: RequestPrincipal, { groups, modelId }: Target): boolean =>
    isMember(principal, groups) && (modelId === undefined || isOpen(principal, modelId, []))

  return {
    isListed,
    /** The model with the targets that the principal may use; undefined if there is none. */
    usable(principal: RequestPrincipal, model: Model): Model | undefined {
      const { id, aliases, isRestricted, targets } = model
      const isLimited = (principal.credential?.models ?? null) !== null || rules().length > 0
      if (isLimited && !isOpen(principal, id, aliases)) return undefined
      const hasOthers = isLimited && targets.at(-1)?.isFallback === true
      if (!isRestricted && !hasOthers) return model
      const usable = targets.filter((target) => isUsable(principal, target))
      if (usable.length === targets.length) return model
      // Another model that stands in for a hidden one must not reveal it.
      const hasOwn = usable.some(({ isFallback }) => isFallback !== true)
      return hasOwn ? { ...model, targets: usable } : undefined
    },
  }
}

function isMember({ groups, isSystem }: RequestPrincipal, allowed: Groups | undefined): boolean {
  if (allowed === undefined || isSystem === true) return true
  return groups.some((group) => allowed.has(group))
}

/** The same by rules that change, and by the id of the model. */
function createRuleReader(
  names: Pick<ModelNames, 'spellings'>,
  rules: () => readonly AccessRule[],
): (id: string, modelNames: readonly string[]) => Groups | undefined {
  let latest: readonly AccessRule[] = []
  let groupsOf = compileAccessRules([])
  let known = new Map<string, Groups | undefined>()
  return (id, modelNames) => {
    const current = rules()
    if (current !== latest) {
      latest = current
      known = new Map()
      groupsOf = compileAccessRules(current, names.spellings)
    }
    if (current.length === 0) return undefined
    if (known.has(id)) return known.get(id)
    const groups = groupsOf(modelNames)
    setBounded(known, id, groups, modelsCachedMax)
    return groups
  }
}
