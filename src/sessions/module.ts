import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { type AttemptStore, createAttemptStore } from './attempt-store.ts'
import { createCodeStore } from './code-store.ts'
import { deviceEndpoints } from './device-endpoints.ts'
import { createDeviceLogins, type DeviceLogins } from './device-logins.ts'
import { loginEndpoints } from './login-endpoints.ts'
import { createOidcClient, type OidcClient } from './oidc-client.ts'
import { createRenewal } from './renewal.ts'
import { sessionEndpoints } from './session-endpoints.ts'
import { createStartCodes, type StartCodes } from './start-codes.ts'

type SessionServices = {
  startCodes: StartCodes
  devices: DeviceLogins
  attemptStore: AttemptStore
  /** Null without an identity provider for logins. */
  oidc: OidcClient | null
}

/** Logins of browsers and of devices. */
export const sessionsModule = module({
  name: 'sessions',
  tags: { Sessions: 'Logging in, in browsers and on devices.' },
  start(needs: Foundation & { auth: Auth; sealer: Sealer }) {
    const { config, database, auth, now } = needs
    const store = createCodeStore(database)
    const oidc = config.login.clientId === undefined ? null : createOidcClient(needs)
    if (oidc !== null) auth.renewSessionsWith(createRenewal({ ...needs, oidc }))
    const services: SessionServices = {
      startCodes: createStartCodes({ store, now }),
      devices: createDeviceLogins({ ...needs, store }),
      attemptStore: createAttemptStore(database),
      oidc,
    }
    return { services }
  },
  endpoints: (services: Foundation & SessionServices & { auth: Auth; sealer: Sealer }) => [
    ...sessionEndpoints(services),
    ...loginEndpoints(services),
    ...deviceEndpoints(services),
  ],
})
