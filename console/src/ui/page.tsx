import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { theme } from '../shell/theme.ts'

/** The frame of a page: its title, what it is for, and its main action. */
export function Page({
  title,
  about,
  actions,
  children,
}: {
  title: string
  about?: ComponentChildren
  actions?: ComponentChildren
  children: ComponentChildren
}) {
  const product = theme.value?.product_name ?? 'Sluice'
  useEffect(() => {
    document.title = `${title} · ${product}`
  }, [title, product])
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1 tabIndex={-1}>{title}</h1>
          {about !== undefined && <p>{about}</p>}
        </div>
        {actions !== undefined && <div class="row">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

export function Card({
  title,
  actions,
  children,
  flush = false,
}: {
  title: ComponentChildren
  actions?: ComponentChildren
  children: ComponentChildren
  /** Without a margin around the content. */
  flush?: boolean
}) {
  return (
    <section class="card">
      <header class="card-head">
        <h2>{title}</h2>
        {actions}
      </header>
      <div class={flush ? '' : 'card-body'}>{children}</div>
    </section>
  )
}
