import postgres from 'postgres'
import { afterChildren, StartError } from './children.ts'

/**
 * Creates an empty database on the server at `serverUrl` and returns its URL. It is dropped when
 * the benchmark ends.
 */
export async function createDatabase(serverUrl: string): Promise<string> {
  const name = `sluice_bench_${crypto.randomUUID().replaceAll('-', '')}`
  await onServer(serverUrl, `create database ${name}`)
  afterChildren(() => onServer(serverUrl, `drop database if exists ${name} with (force)`))
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

async function onServer(serverUrl: string, statement: string): Promise<void> {
  const sql = postgres(serverUrl, { max: 1, onnotice: () => undefined })
  try {
    await sql.unsafe(statement)
  } catch (error) {
    throw new StartError(`the database server refused "${statement}": ${String(error)}`)
  } finally {
    await sql.end()
  }
}

/** The postmaster's process id if it runs on this machine; otherwise null. */
export async function serverPid(databaseUrl: string): Promise<number | null> {
  const client = postgres(databaseUrl, { max: 1, onnotice: () => undefined })
  try {
    const [row] = await client<{ pid: number }[]>`select pg_backend_pid() as pid`
    const status = await Bun.file(`/proc/${row?.pid}/status`).text()
    const isServer = /^Name:\s+postgres$/m.test(status)
    return isServer ? Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]) : null
  } catch {
    return null
  } finally {
    await client.end()
  }
}

/** Sets the memory for building indexes in this database, in PostgreSQL notation: `1GB`. */
export async function setBuildMemory(databaseUrl: string, memory: string): Promise<void> {
  const client = postgres(databaseUrl, { max: 1, onnotice: () => undefined })
  try {
    const name = client(new URL(databaseUrl).pathname.slice(1))
    const value = `'${memory.replaceAll("'", '')}'`
    await client`alter database ${name} set maintenance_work_mem = ${client.unsafe(value)}`
  } finally {
    await client.end()
  }
}
