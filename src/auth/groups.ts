import type { Log } from '#telemetry/log.ts'
import { isPermission, type Permission } from './permissions.ts'

/** What groups may do, in memory. */
export type GroupPermissions = {
  /** The union over the groups; one that is not known grants nothing. */
  of(groups: readonly string[]): ReadonlySet<Permission>
  /** Reads the table again; on failure the earlier state stays. */
  reload(): Promise<void>
}

export async function createGroupPermissions(options: {
  load: () => Promise<readonly { name: string; permissions: readonly string[] }[]>
  log: Pick<Log, 'error'>
}): Promise<GroupPermissions> {
  const read = async () => {
    const rows = await options.load()
    return new Map(rows.map((row) => [row.name, row.permissions.filter(isPermission)]))
  }
  let byGroup = await read()
  // Keyed by the list itself: a cached principal asks with the same list at each request.
  let unions = new WeakMap<readonly string[], ReadonlySet<Permission>>()
  let reloads = 0
  return {
    of(groups) {
      const known = unions.get(groups)
      if (known !== undefined) return known
      const union = new Set(groups.flatMap((name) => byGroup.get(name) ?? []))
      unions.set(groups, union)
      return union
    },
    async reload() {
      reloads += 1
      const own = reloads
      try {
        const fresh = await read()
        // A slower answer to an earlier question is older.
        if (own !== reloads) return
        byGroup = fresh
        unions = new WeakMap()
      } catch (error) {
        options.log.error('The permissions of the groups cannot be read again.', { error })
      }
    },
  }
}
