import type { Audit } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import type { Config } from '#config/schema.ts'
import { createChangeMaker, type DirectoryDatabase } from './change-store.ts'
import { createGroups, type Groups } from './groups/groups.ts'
import { createMembers, type Members } from './members/members.ts'
import { createServiceAccounts, type ServiceAccounts } from './service-accounts/service-accounts.ts'
import { createUsers, type Users } from './users/users.ts'

/** Who there is, in which groups, and what the groups may do. */
export type Directory = {
  readonly groups: Groups
  readonly members: Members
  readonly users: Users
  readonly serviceAccounts: ServiceAccounts
}

export function createDirectory(deps: {
  database: DirectoryDatabase
  auth: Pick<Auth, 'changes' | 'keyRing'>
  audit: Pick<Audit, 'record'>
  config: Pick<Config, 'groups'>
  now: () => Date
}): Directory {
  const { database, config, now } = deps
  const { keyRing } = deps.auth
  const makeChange = createChangeMaker(deps)
  const groups = createGroups({ database, makeChange, config, now })
  const users = createUsers({ database, makeChange, now })
  return {
    groups,
    users,
    members: createMembers({ database, makeChange, groups, now }),
    serviceAccounts: createServiceAccounts({ makeChange, users, keyRing, now }),
  }
}
