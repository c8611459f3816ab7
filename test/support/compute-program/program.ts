import { getPriority } from 'node:os'
import { serveGateway } from '#lib/compute-process.ts'

serveGateway()
process.send?.(getPriority())
