import type { FunctionComponent } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { logOut, may, me } from '../session/session.ts'
import { text } from '../texts/texts.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Empty, Fault } from '../ui/notice.tsx'
import { Page } from '../ui/page.tsx'
import { LanguageSelector } from './language-selector.tsx'
import { type PageEntry, pages, sections } from './pages.ts'
import { href, place } from './router.ts'
import { chooseScheme, type Scheme, scheme, theme } from './theme.ts'

const isAllowed = ({ permission }: PageEntry) => permission === undefined || may(permission)

export function Shell() {
  const { path } = place.value
  const entry = pages.find((page) => page.path === path && isAllowed(page))
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    main.current?.scrollTo(0, 0)
    if (!isFirst.current) main.current?.focus({ preventScroll: true })
    isFirst.current = false
  }, [path])
  return (
    <div class="shell">
      <a class="skip" href="#content">
        {text('app.skip')}
      </a>
      <Rail current={path} />
      <main id="content" tabIndex={-1} ref={main}>
        {entry === undefined ? <NotFound /> : <Lazy key={entry.path} entry={entry} />}
      </main>
    </div>
  )
}

function Lazy({ entry }: { entry: PageEntry }) {
  const [loaded, setLoaded] = useState<{ page: FunctionComponent } | { error: unknown } | null>(
    null,
  )
  useEffect(() => {
    entry.load().then(
      (page) => setLoaded({ page }),
      (error) => setLoaded({ error }),
    )
  }, [entry])
  if (loaded === null) return <Page title={text(entry.title)}>{null}</Page>
  if ('error' in loaded) {
    return (
      <Page title={text(entry.title)}>
        <Fault error={loaded.error} onRetry={() => location.reload()} />
      </Page>
    )
  }
  return <loaded.page />
}

function NotFound() {
  return (
    <Page title={text('app.not_found')}>
      <Empty
        icon="warning"
        title={text('app.not_found')}
        action={
          <a class="button" href={href('/')}>
            {text('app.to_start')}
          </a>
        }
      >
        {text('app.not_found_hint')}
      </Empty>
    </Page>
  )
}

function Rail({ current }: { current: string }) {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => setOpen(false), [current])
  const product = theme.value?.product_name ?? 'Sluice'
  return (
    <header class="rail" data-open={isOpen}>
      <div class="rail-head">
        <a class="brand" href={href('/')}>
          {theme.value !== null && <img src={theme.value.logo_url} alt="" />}
          {product}
        </a>
        <span class="menu-button">
          <Button
            kind="quiet"
            icon="menu"
            label={text('app.menu')}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          />
        </span>
      </div>
      <nav aria-label={text('app.navigation')}>
        {sections.map((section) => {
          const shown = pages.filter((page) => page.section === section && isAllowed(page))
          if (shown.length === 0) return null
          return (
            <div key={section}>
              <h2>{text(`nav.${section}`)}</h2>
              <ul>
                {shown.map(({ path, title, icon }) => (
                  <li key={path}>
                    <a href={href(path)} aria-current={path === current ? 'page' : undefined}>
                      <Icon name={icon} />
                      {text(title)}
                    </a>
                  </li>
                ))}
              </ul>
            </div>
          )
        })}
      </nav>
      <Account />
    </header>
  )
}

const schemes: readonly { name: Scheme; icon: 'screen' | 'sun' | 'moon' }[] = [
  { name: 'system', icon: 'screen' },
  { name: 'light', icon: 'sun' },
  { name: 'dark', icon: 'moon' },
]

function Account() {
  const user = me.value
  if (!user) return null
  const name = user.name ?? user.subject ?? ''
  return (
    <section class="account" aria-label={text('app.account')}>
      <div class="row">
        <fieldset class="segments" aria-label={text('app.scheme')}>
          {schemes.map(({ name: choice, icon }) => (
            <button
              key={choice}
              type="button"
              aria-pressed={scheme.value === choice}
              aria-label={text(`app.scheme.${choice}`)}
              title={text(`app.scheme.${choice}`)}
              onClick={() => chooseScheme(choice)}
            >
              <Icon name={icon} size={16} />
            </button>
          ))}
        </fieldset>
        <LanguageSelector />
      </div>
      <div class="row">
        <span class="avatar" aria-hidden="true">
          {name.slice(0, 1).toUpperCase()}
        </span>
        <a
          class="grow truncate"
          href={href('/sessions')}
          title={`${text('sessions.title')} · ${user.groups.map((group) => group.name).join(', ')}`}
        >
          {name}
        </a>
        <Button
          kind="quiet"
          size="small"
          icon="leave"
          label={text('app.logout')}
          onClick={() => void logOut()}
        />
      </div>
    </section>
  )
}
