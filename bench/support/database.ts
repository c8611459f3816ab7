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
