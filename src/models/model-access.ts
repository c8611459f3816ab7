import type { Target } from '#inference/upstream.ts'
import { matchNames, type NameMatcher } from '#lib/name-patterns.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Model } from './catalogue.ts'
import type { ModelNames } from './names.ts'

export type ModelAccess = ReturnType<typeof createModelAccess>

/**
 * Decides which models exist for a principal: those that a group of the user may use, and of these,
 * with an API key, those on the list of the key.
 */
export function createModelAccess(names: Pick<ModelNames, 'spellings' | 'ofModel'>) {
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
  const isListed = (
    { credential }: RequestPrincipal,
    ...modelNames: readonly string[]
  ): boolean => {
    const list = credential?.models ?? null
    return list === null || modelNames.some(matcherOf(list))
  }

  return {
    isListed,
    /** The model with the targets that the principal may use; undefined if there is none. */
    usable(principal: RequestPrincipal, model: Model): Model | undefined {
      const { id, aliases } = model
      const hasList = (principal.credential?.models ?? null) !== null
      if (hasList && !isListed(principal, id, names.ofModel(id), ...aliases)) return undefined
      return model.isRestricted ? withoutHiddenTargets(principal, model) : model
    },
  }
}

function withoutHiddenTargets(principal: RequestPrincipal, model: Model): Model | undefined {
  const targets = model.targets.filter((target) => isOpenTo(principal, target))
  if (targets.length === model.targets.length) return model
  // Another model that stands in for a hidden one must not reveal it.
  const hasOwn = targets.some(({ isFallback }) => isFallback !== true)
  return hasOwn ? { ...model, targets } : undefined
}

function isOpenTo({ groups, isSystem }: RequestPrincipal, { groups: allowed }: Target): boolean {
  if (allowed === undefined || isSystem === true) return true
  return groups.some((group) => allowed.has(group))
}
