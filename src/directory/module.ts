import type { Audit } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import { createDirectory, type Directory } from './directory.ts'
import { groupEndpoints } from './group-endpoints.ts'
import { meEndpoint } from './me-endpoint.ts'
import { memberEndpoints } from './member-endpoints.ts'
import { serviceAccountEndpoints } from './service-account-endpoints.ts'
import { userEndpoints } from './user-endpoints.ts'

/** Users, groups and service accounts. */
export const directoryModule = module({
  name: 'directory',
  tags: { Directory: 'Users, service accounts, groups and the audit log.' },
  start: (needs: Foundation & { auth: Auth; audit: Audit }) => ({
    services: { directory: createDirectory(needs) },
  }),
  endpoints: ({ directory, now }: Foundation & { directory: Directory }) =>
    directoryEndpoints({ directory, now }),
})

export function directoryEndpoints({ directory, now }: { directory: Directory; now: () => Date }) {
  return [
    meEndpoint(),
    ...groupEndpoints(directory),
    ...memberEndpoints(directory),
    ...userEndpoints(directory),
    ...serviceAccountEndpoints({ ...directory, now }),
  ]
}
