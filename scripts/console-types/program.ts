/**
 * `bun run console:types` writes the types of the API that the console compiles against. They are not
 * committed: a change of an endpoint shows as a type error of the console.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildApp } from '#app.ts'
import { loadConfig } from '#config/load.ts'
import { openDatabase } from '#db/client.ts'
import { startServices } from '#modules.ts'
import { createLog } from '#telemetry/log.ts'
import { renderTypes } from './render.ts'

const target = join(import.meta.dir, '../../console/src/api/generated')
const folder = mkdtempSync(join(tmpdir(), 'sluice-console-types-'))
const document = join(folder, 'openapi.json')
writeFileSync(document, await readDocument())
const { types, operations } = await renderTypes(document, join(folder, 'types'))
mkdirSync(target, { recursive: true })
writeFileSync(join(target, 'types.ts'), types)
writeFileSync(join(target, 'operations.ts'), operations)
rmSync(folder, { recursive: true })

/** The document of a gateway without configuration, which serves every endpoint. */
async function readDocument(): Promise<string> {
  const log = createLog({ level: 'error', format: 'json', write: () => {}, now: () => new Date() })
  const environment = { SLUICE_DATA: join(folder, 'data'), JWT_SECRET: 'x'.repeat(32) }
  const config = loadConfig(environment)
  const database = await openDatabase({ dataFolder: config.data, connectionsMax: 1, log })
  const services = await startServices(config, { log, draining: () => false, database })
  const response = await buildApp(services).handle(new Request('http://localhost/openapi.json'))
  const text = await response.text()
  await services.close()
  return text
}
