import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import { createCodeStore } from './code-store.ts'
import { sessionEndpoints } from './session-endpoints.ts'
import { createStartCodes, type StartCodes } from './start-codes.ts'

/** Logins of browsers and of devices. */
export const sessionsModule = module({
  name: 'sessions',
  tags: { Sessions: 'Logging in, in browsers and on devices.' },
  start({ database, now }: Foundation) {
    const store = createCodeStore(database)
    return { services: { startCodes: createStartCodes({ store, now }) } }
  },
  endpoints: (services: Foundation & { auth: Auth; startCodes: StartCodes }) =>
    sessionEndpoints({ ...services, oidc: null }),
})
