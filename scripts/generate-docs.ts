/** `bun run docs:generate`: writes the documents that are generated from code and packages. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderConfigReference } from './config-reference.ts'
import { renderMetricsReference } from './metrics-reference.ts'
import { renderNotices } from './third-party-notices.ts'

const root = join(import.meta.dir, '..')
writeFileSync(join(root, 'docs/configuration.md'), renderConfigReference())
writeFileSync(join(root, 'docs/metrics.md'), renderMetricsReference())
writeFileSync(join(root, 'THIRD_PARTY_NOTICES'), renderNotices())
