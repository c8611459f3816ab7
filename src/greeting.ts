import { signDevelopmentToken } from './auth/tokens.ts'
import { clock } from './clock.ts'
import type { Config } from './config/schema.ts'
import { commandLine } from './lib/own-program.ts'
import { localUrl } from './lib/reachable-host.ts'
import { missingRuntimeLines } from './local-runtimes.ts'
import { codeSessionS } from './sessions/start-codes.ts'

/** Printed at the start without an identity provider: a link that logs in, a token and a working request. */
export async function renderGreeting(
  config: Config,
  { port, code }: { port: number; code: string },
): Promise<string> {
  const token = await signDevelopmentToken(config, {
    subject: 'dev',
    groups: ['admins'],
    validS: codeSessionS,
    now: clock.now(),
  })
  const origin = localUrl({ ...config, port })
  const model = config.upstream.length === 0 ? 'demo' : '<a model of GET /v1/models>'
  const link = config.console.enabled
    ? `\n\nConsole (this link logs in once): ${origin}/console/#code=${code}`
    : ''
  const missing = missingRuntimeLines(config)
  const engines =
    missing.length === 0 ? '' : `\n\nNot installed on this machine yet:\n${missing.join('\n')}`
  return `
Sluice listens on ${origin}. No identity provider is configured, so this is a
development token; create others with: ${commandLine('token')} --sub NAME --groups a,b${link}${engines}

curl -N ${origin}/v1/responses \\
  -H 'Authorization: Bearer ${token}' \\
  -H 'Content-Type: application/json' \\
  -d '{"model": "${model}", "input": "Say hello.", "stream": true}'

`
}
