import { clock } from '#clock.ts'
import { ArgumentError, readOptions } from '#config/arguments.ts'
import { loadConfigFromProcess } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { commandLine } from '#lib/own-program.ts'
import { StartError } from '#start-error.ts'
import { loadOrCreateDevSecret } from './dev-secret.ts'
import { signDevelopmentToken } from './tokens.ts'

const secondsPerUnit: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

const usage = `
Usage: ${commandLine('token').replace('run', 'run --silent')} [--sub NAME] [--groups a,b] [--expires 30d]

Prints a development token. Without options: of "dev" in the group admins, valid for 30 days.`

/** The command `token`. */
export async function printToken(args: readonly string[]): Promise<number> {
  const claims = readArguments(args)
  if (claims === null) return 0
  const config = withSecret(loadConfigFromProcess([]))
  process.stdout.write(`${await signDevelopmentToken(config, { ...claims, now: clock.now() })}\n`)
  return 0
}

function readArguments(argv: readonly string[]) {
  const values = readOptions(argv, {
    usage,
    options: {
      sub: { type: 'string', default: 'dev' },
      groups: { type: 'string', default: 'admins' },
      expires: { type: 'string', default: '30d' },
    },
  })
  if (values === null) return null
  const [, amount, unit = ''] = /^(\d{1,9})([smhd])$/.exec(values.expires) ?? []
  const unitS = secondsPerUnit[unit]
  if (amount === undefined || unitS === undefined) {
    throw new ArgumentError('--expires takes a number and a unit: 90s, 30m, 12h or 30d.')
  }
  return {
    subject: values.sub,
    groups: values.groups.split(',').filter((name) => name !== ''),
    validS: Number(amount) * unitS,
  }
}

function withSecret(config: Config): Config {
  const { jwt } = config
  if (jwt.secret !== undefined) return config
  if (jwt.jwksUrl !== undefined) {
    throw new StartError(
      'JWT_JWKS_URL is set, so the identity provider issues the tokens; set JWT_SECRET as well to sign your own.',
    )
  }
  return { ...config, jwt: { ...jwt, secret: loadOrCreateDevSecret(config.data) } }
}
