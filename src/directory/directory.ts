import type { Audit } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import type { Config } from '#config/schema.ts'
import { createChangeMaker, type DirectoryDatabase } from './change-store.ts'
import { createGroups, type Groups } from './groups.ts'
import { createMembers, type Members } from './members.ts'
import { createServiceAccounts, type ServiceAccounts } from './service-accounts.ts'
import { createUsers, type Users } from './users.ts'

/** Users, groups, memberships and service accounts. */
export type Directory = {
  readonly groups: Groups
  readonly members: Members
  readonly users: Users
  readonly serviceAccounts: ServiceAccounts
}

export function createDirectory(deps: {
  database: DirectoryDatabase
  auth: Pick<Auth, 'changes' | 'keys'>
  audit: Pick<Audit, 'record'>
  config: Pick<Config, 'groups'>
  now: () => Date
}): Directory {
  const { database, config, now } = deps
  const { keys } = deps.auth
  const makeChange = createChangeMaker(deps)
  const groups = createGroups({ database, makeChange, config, now })
  const users = createUsers({ database, makeChange, now })
  return {
    groups,
    users,
    members: createMembers({ database, makeChange, groups, now }),
    serviceAccounts: createServiceAccounts({ makeChange, users, keys, now }),
  }
}
