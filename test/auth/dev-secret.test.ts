import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt, jwtVerify } from 'jose'
import { loadOrCreateDevSecret } from '#auth/dev-secret.ts'
import { signDevelopmentToken } from '#auth/tokens.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import { openTestDatabase } from '#test/support/database.ts'
import { secret, startWorld } from './world.ts'

let folder: string

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'sluice-test-')), 'data')
})

afterEach(() => {
  rmSync(join(folder, '..'), { recursive: true })
})

describe('the development secret', () => {
  test('is created once, is long enough, and readable by its owner only', () => {
    const made = loadOrCreateDevSecret(folder)
    expect(made).toMatch(/^[\w-]{43}$/)
    expect(loadOrCreateDevSecret(folder)).toBe(made)
    expect(readdirSync(folder)).toEqual(['dev-jwt-secret'])
    expect(statSync(join(folder, 'dev-jwt-secret')).mode & 0o777).toBe(0o600)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  test('is the same for processes that start concurrently', async () => {
    const source = join(import.meta.dir, '../../src/auth/dev-secret.ts')
    const program = `
      const { loadOrCreateDevSecret } = await import(${JSON.stringify(source)})
      process.stdout.write(loadOrCreateDevSecret(${JSON.stringify(folder)}))`
    const secrets = await Promise.all(
      Array.from({ length: 6 }, () =>
        new Response(Bun.spawn([process.execPath, '-e', program]).stdout).text(),
      ),
    )
    expect(new Set(secrets)).toEqual(new Set([loadOrCreateDevSecret(folder)]))
  })

  test('is refused when its file is damaged', () => {
    mkdirSync(folder)
    writeFileSync(join(folder, 'dev-jwt-secret'), `${'x'.repeat(31)}\n`)
    expect(() => loadOrCreateDevSecret(folder)).toThrow('dev-jwt-secret is damaged')
    writeFileSync(join(folder, 'dev-jwt-secret'), 'x'.repeat(32))
    expect(loadOrCreateDevSecret(folder)).toBe('x'.repeat(32))
  })

  test('is not created in place of a file that cannot be read', () => {
    mkdirSync(folder)
    symlinkSync('nowhere', join(folder, 'dev-jwt-secret'))
    expect(() => loadOrCreateDevSecret(folder)).toThrow('EEXIST')
    expect(readdirSync(folder)).toEqual(['dev-jwt-secret'])
  })
})

describe('a development token', () => {
  test('is accepted with the configured issuer and audience', async () => {
    const database = await openTestDatabase()
    const jwt = { secret, issuer: 'https://idp.example', audience: 'sluice', groupsClaim: 'roles' }
    const world = await startWorld(database, { jwt })
    const bearer = await signDevelopmentToken(world.config, {
      subject: 'dev',
      groups: ['admins', 'users'],
      validS: 60,
      now: world.now(),
    })
    expect((await world.send('/who', { bearer })).body).toMatchObject({
      subject: 'dev',
      groups: ['admins', 'users'],
    })
    await world.close()
    await database.close()
  })
})

describe('bun run token', () => {
  async function run(args: readonly string[], environment: Record<string, string> = {}) {
    const program = join(import.meta.dir, '../../src/main.ts')
    const beganS = unixSeconds(new Date())
    const child = Bun.spawn([process.execPath, program, 'token', ...args], {
      cwd: tmpdir(),
      env: { SLUICE_DATA: folder, ...environment },
      stderr: 'pipe',
    })
    const [output, complaint, exitCode] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    const endedS = unixSeconds(new Date())
    /** Whether a token with this end is valid for this long from its signing. */
    const isFor = (validS: number, exp: number) => exp - validS >= beganS && exp - validS <= endedS
    return { output, complaint, exitCode, isFor }
  }

  test('prints only a token', async () => {
    const { output, complaint, exitCode, isFor } = await run([])
    expect({ complaint, exitCode }).toEqual({ complaint: '', exitCode: 0 })
    expect(output).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    const { sub, groups, exp = 0 } = decodeJwt(output.trim())
    expect({ sub, groups, isValid: isFor(30 * 86_400, exp) }).toEqual({
      sub: 'dev',
      groups: ['admins'],
      isValid: true,
    })
  })

  test('accepts a name, groups and a validity', async () => {
    const { output, isFor } = await run(['--sub', 'ann', '--groups', 'a,b', '--expires', '90m'], {
      JWT_SECRET: secret,
    })
    const { payload } = await jwtVerify(output.trim(), Buffer.from(secret))
    const { sub, groups, exp = 0 } = payload
    expect({ sub, groups, isValid: isFor(5_400, exp) }).toEqual({
      sub: 'ann',
      groups: ['a', 'b'],
      isValid: true,
    })
  })

  test('signs with JWT_SECRET also beside an identity provider; groups may be none', async () => {
    const provider = {
      JWT_JWKS_URL: 'https://idp.example/jwks',
      JWT_ISSUER: 'i',
      JWT_AUDIENCE: 'a',
    }
    const { output, isFor } = await run(['--groups', '', '--expires', '45s'], {
      ...provider,
      JWT_SECRET: secret,
    })
    const { payload } = await jwtVerify(output.trim(), Buffer.from(secret))
    const { iss, aud, groups, exp = 0 } = payload
    expect({ iss, aud, groups, isValid: isFor(45, exp) }).toEqual({
      iss: 'i',
      aud: 'a',
      groups: [],
      isValid: true,
    })
  })

  test('prints its usage', async () => {
    const { output, exitCode } = await run(['--help'])
    expect([output, exitCode]).toEqual([expect.stringContaining('Usage: bun run'), 0])
  })

  test.each<[string, string[], Record<string, string>, string]>([
    ['a bad time', ['--expires', 'soon'], {}, '--expires takes a number and a unit'],
    ['an unknown option', ['--role', 'root'], {}, '--role'],
    ['a bad configuration', [], { PORT: 'many' }, 'PORT'],
    [
      'an identity provider in charge',
      [],
      { JWT_JWKS_URL: 'https://idp.example/jwks', JWT_ISSUER: 'i', JWT_AUDIENCE: 'a' },
      'the identity provider issues the tokens',
    ],
  ])('refuses %s with a clear message', async (_, args, environment, words) => {
    const { output, complaint, exitCode } = await run(args, environment)
    expect({ output, exitCode }).toEqual({ output: '', exitCode: 1 })
    expect(complaint).toContain(words)
    expect(complaint).not.toContain('    at ')
  })
})
