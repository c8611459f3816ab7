import type { Log } from '#telemetry/log.ts'
import { isPermission, type Permission } from './permissions.ts'

/** Which groups somebody is in, as it is kept: what the words mean is asked anew each time. */
export type Membership = {
  /** Those of the newest token. */
  readonly words: readonly string[]
  /** Names of groups, given by hand. */
  readonly manual: readonly string[]
}

/** What a membership comes to at this moment. */
type Rights = {
  /** By name, sorted. Words that mean no known group are among them: shares and agents name them. */
  readonly groups: readonly string[]
  /** The union over the groups; one that is not known grants nothing. */
  readonly permissions: ReadonlySet<Permission>
}

/** What groups are and may do, in memory. */
export type GroupRights = {
  of(membership: Membership): Rights
  /** Reads the table again; on failure the earlier state stays. */
  reload(): Promise<void>
}

type GroupRow = {
  readonly name: string
  readonly permissions: readonly string[]
  readonly idpClaim: string | null
}

export async function createGroupRights(options: {
  load: () => Promise<readonly GroupRow[]>
  log: Pick<Log, 'error'>
}): Promise<GroupRights> {
  let resolve = resolverOf(await options.load())
  // Keyed by the membership itself: a cached caller asks with the same one at each request.
  let known = new WeakMap<Membership, Rights>()
  let reloads = 0
  let latest = Promise.resolve()

  async function readAgain(): Promise<void> {
    reloads += 1
    const own = reloads
    try {
      const rows = await options.load()
      // A slower answer to an earlier question is older.
      if (own !== reloads) return latest
      resolve = resolverOf(rows)
      known = new WeakMap()
    } catch (error) {
      options.log.error('The permissions of the groups cannot be read again.', { error })
    }
  }
  return {
    of(membership) {
      const before = known.get(membership)
      if (before !== undefined) return before
      const rights = resolve(membership)
      known.set(membership, rights)
      return rights
    },
    reload() {
      latest = readAgain()
      return latest
    },
  }
}

/**
 * The rule of the view `user_group`: a word means the group that claims it, and else the group of
 * that name, unless that group claims another word.
 */
function resolverOf(rows: readonly GroupRow[]): (membership: Membership) => Rights {
  const byName = new Map(rows.map((row) => [row.name, row]))
  const byClaim = new Map(
    rows.flatMap((row) => (row.idpClaim === null ? [] : [[row.idpClaim, row.name] as const])),
  )
  const meant = (word: string): string[] => {
    const claiming = byClaim.get(word)
    if (claiming !== undefined) return [claiming]
    return (byName.get(word)?.idpClaim ?? null) === null ? [word] : []
  }
  return ({ words, manual }) => {
    const groups = [...new Set([...words.flatMap(meant), ...manual])].sort()
    const granted = groups.flatMap((name) => byName.get(name)?.permissions ?? [])
    return { groups, permissions: new Set(granted.filter(isPermission)) }
  }
}
