import type { Log } from '#telemetry/log.ts'
import { isPermission, type Permission } from './permissions.ts'

/** The groups of a user as stored. Claim values are mapped to groups at each request. */
export type Membership = {
  /** Claim values of the newest token. */
  readonly idpGroups: readonly string[]
  /** Names of groups that an administrator added the user to. */
  readonly manual: readonly string[]
}

/** The groups and permissions of a membership at this moment. */
export type Rights = {
  /** Names, sorted, including claim values without a known group: shares and agents name them. */
  readonly groups: readonly string[]
  /** The union over the groups; an unknown group grants nothing. */
  readonly permissions: ReadonlySet<Permission>
}

export type GroupRights = Awaited<ReturnType<typeof createGroupRights>>

type GroupRow = {
  readonly name: string
  readonly permissions: readonly string[]
  readonly idpClaim: string | null
}

/** The permissions of all groups, in memory. */
export async function createGroupRights(options: {
  load: () => Promise<readonly GroupRow[]>
  log: Pick<Log, 'error'>
}) {
  let resolve = resolverOf(await options.load())
  // By identity: a cached principal has the same membership object at each request.
  let resolved = new WeakMap<Membership, Rights>()
  let reloads = 0
  let latest = Promise.resolve()

  async function reload(): Promise<void> {
    reloads += 1
    const own = reloads
    try {
      const rows = await options.load()
      // A later reload has newer rows.
      if (own !== reloads) return latest
      resolve = resolverOf(rows)
      resolved = new WeakMap()
    } catch (error) {
      options.log.error('group permissions reload failed', { error })
    }
  }
  return {
    of(membership: Membership): Rights {
      const before = resolved.get(membership)
      if (before !== undefined) return before
      const rights = resolve(membership)
      resolved.set(membership, rights)
      return rights
    },
    /** Reads the table; on failure the previous state stays. */
    reload(): Promise<void> {
      latest = reload()
      return latest
    },
  }
}

/**
 * The rule of the view `user_group`: a claim value maps to the group with that `idp_claim`,
 * otherwise to the group of that name, unless that group has another `idp_claim`.
 */
function resolverOf(rows: readonly GroupRow[]): (membership: Membership) => Rights {
  const byName = new Map(rows.map((row) => [row.name, row]))
  const byClaim = new Map(
    rows.flatMap((row) => (row.idpClaim === null ? [] : [[row.idpClaim, row.name] as const])),
  )
  const groupsFor = (claimValue: string): string[] => {
    const mapped = byClaim.get(claimValue)
    if (mapped !== undefined) return [mapped]
    return (byName.get(claimValue)?.idpClaim ?? null) === null ? [claimValue] : []
  }
  return ({ idpGroups, manual }) => {
    const groups = [...new Set([...idpGroups.flatMap(groupsFor), ...manual])].sort()
    const granted = groups.flatMap((name) => byName.get(name)?.permissions ?? [])
    return { groups, permissions: new Set(granted.filter(isPermission)) }
  }
}
