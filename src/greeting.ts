import { signDevelopmentToken } from './auth/tokens.ts'
import { clock } from './clock.ts'
import type { Config } from './config/schema.ts'
import { commandLine } from './lib/own-program.ts'

/** The validity of the printed token: 30 days. */
const tokenValidS = 2_592_000

/** Printed at the start without an identity provider: a token and a working request. */
export async function renderGreeting(config: Config, port: number): Promise<string> {
  const token = await signDevelopmentToken(config, {
    subject: 'dev',
    groups: ['admins'],
    validS: tokenValidS,
    now: clock.now(),
  })
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  const model = config.upstream.length === 0 ? 'demo' : '<a model of GET /v1/models>'
  return `
Sluice listens on http://${host}:${port}. No identity provider is configured, so this is a
development token; create others with: ${commandLine('token')} --sub NAME --groups a,b

curl -N http://${host}:${port}/v1/responses \\
  -H 'Authorization: Bearer ${token}' \\
  -H 'Content-Type: application/json' \\
  -d '{"model": "${model}", "input": "Say hello.", "stream": true}'

`
}
