import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import { apiKeyEndpoints } from './endpoints.ts'

/** The API keys of users. */
export const apiKeysModule = module({
  name: 'api-keys',
  tags: { 'API keys': 'Credentials for programs.' },
  endpoints: (services: Foundation & { auth: Auth }) => apiKeyEndpoints(services),
})
