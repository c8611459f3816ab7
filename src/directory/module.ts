import type { Audit } from '#audit/store.ts'
import type { Auth } from '#auth/auth.ts'
import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import { type Foundation, module } from '#module.ts'
import { createChangeMaker } from './change-store.ts'
import { groupEndpoints } from './group-endpoints.ts'
import { createGroups } from './group-store.ts'
import { meEndpoint } from './me-endpoint.ts'
import { memberEndpoints } from './member-endpoints.ts'
import { createMembers } from './member-store.ts'
import { serviceAccountEndpoints } from './service-account-endpoints.ts'
import { createServiceAccounts } from './service-account-store.ts'
import { userEndpoints } from './user-endpoints.ts'
import { createUsers } from './user-store.ts'

type DirectoryNeeds = {
  database: Database
  auth: Auth
  audit: Audit
  config: Config
  now: () => Date
}

/** Users, groups and service accounts. */
export const directoryModule = module({
  name: 'directory',
  tags: { Directory: 'Users, service accounts, groups and the audit log.' },
  endpoints: (needs: Foundation & { auth: Auth; audit: Audit }) => directoryEndpoints(needs),
})

export function directoryEndpoints(needs: DirectoryNeeds) {
  const deps = { ...needs, makeChange: createChangeMaker(needs) }
  const users = createUsers(deps)
  return [
    meEndpoint(),
    ...groupEndpoints(createGroups(deps)),
    ...memberEndpoints(createMembers(deps)),
    ...userEndpoints(users),
    ...serviceAccountEndpoints({ ...deps, users, serviceAccounts: createServiceAccounts(deps) }),
  ]
}
