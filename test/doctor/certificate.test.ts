import { afterEach, expect, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '#config/load.ts'
import {
  configFile,
  startGatewayProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'
import { certificateCheck } from '#tls/doctor.ts'
import { openServedCertificate } from '#tls/served-certificate.ts'
import { runDoctor } from './run-doctor.ts'

/** The doctor: the TLS certificate; and the expiry of the one that is served. */

afterEach(stopProcesses)

const fixtures = join(import.meta.dir, '../fixtures/tls')
const file = (name: string) => join(fixtures, name)
const dayMs = 86_400_000
const pair = (cert: string, key: string) => ({
  SLUICE_TLS_CERT: file(cert),
  SLUICE_TLS_KEY: file(key),
})

test('a usable certificate is found, and the server behind it', async () => {
  const { finding } = await runDoctor({ environment: pair('localhost.pem', 'localhost.key') })
  expect(finding('certificate')).toMatchObject({ verdict: 'ok' })
  expect(finding('certificate').detail).toContain('for localhost is valid until')

  const toml = `[tls]\ncert = "${file('localhost.pem')}"\nkey = "${file('localhost.key')}"\n`
  const gateway = await startGatewayProcess({ environment: { SLUICE_CONFIG: configFile(toml) } })
  const environment = { ...pair('localhost.pem', 'localhost.key'), PORT: String(gateway.port()) }
  expect((await runDoctor({ environment })).finding('address').detail).toContain(
    'a server is running',
  )
})

test('a certificate with the key of another one fails', async () => {
  const { exitCode, finding } = await runDoctor({
    environment: pair('localhost.pem', 'elsewhere.key'),
  })
  expect([exitCode, finding('certificate').verdict]).toEqual([1, 'fail'])
  expect(finding('certificate').detail).toContain('does not belong to the certificate')
})

test('expiry is a warning before, and a failure after', async () => {
  const config = loadConfig(pair('localhost.pem', 'localhost.key'))
  const at = async (now: Date) =>
    (
      await certificateCheck.check(
        { config, now: () => now } as never,
        new AbortController().signal,
      )
    )[0]
  const found = await at(new Date())
  const expiresAtMs = Date.parse(/until (\S+)/.exec(found?.detail ?? '')?.[1] ?? '')
  expect((await at(new Date(expiresAtMs - 20 * dayMs)))?.verdict).toBe('ok')
  expect((await at(new Date(expiresAtMs - 13 * dayMs)))?.verdict).toBe('warn')
  expect(await at(new Date(expiresAtMs + dayMs))).toMatchObject({ verdict: 'fail' })
})

test('the log warns of the expiry once a day, and an expired certificate replaces no valid one', async () => {
  const folder = temporaryFolder()
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  const use = (name: string) => {
    copyFileSync(file(`${name}.pem`), cert)
    copyFileSync(file(`${name}.key`), key)
  }
  use('self-signed')
  const { tls } = loadConfig({ SLUICE_TLS_CERT: cert, SLUICE_TLS_KEY: key })
  let now = new Date()
  const logged: string[] = []
  const note = (message: string) => void logged.push(message)
  const served = await openServedCertificate({
    settings: { ...tls, checkMs: 3_600_000 },
    log: { info: note, warn: note },
    now: () => now,
  })
  if (served === null) throw new Error('no certificate')
  let listened = 0
  served.watch(() => void listened++)
  const later = served.current().expiresAt
  use('earlier')
  expect(await served.reload()).toBeNull()
  const earlier = served.current().expiresAt
  expect([listened, earlier < later]).toEqual([1, true])
  expect(logged).toEqual(['TLS certificate reloaded'])

  const reloadAt = async (ms: number) => {
    now = new Date(ms)
    logged.length = 0
    await served.reload()
    return [...logged]
  }
  const soon = earlier.getTime() - 10 * dayMs
  expect(await reloadAt(soon)).toEqual(['TLS certificate expires soon'])
  expect(await reloadAt(soon + dayMs / 2)).toEqual([])
  expect(await reloadAt(soon + dayMs)).toEqual(['TLS certificate expires soon'])

  // The other one is valid for longer.
  use('self-signed')
  expect(await served.reload()).toBeNull()
  use('earlier')
  now = new Date((earlier.getTime() + later.getTime()) / 2)
  expect(await served.reload()).toContain('has expired')
  expect(served.current().expiresAt).toEqual(later)
  served.close()
})
