import type { FunctionComponent } from 'preact'
import type { Permission } from '../session/session.ts'
import type { TextKey } from '../texts/texts.ts'
import type { IconName } from '../ui/icon.tsx'

type Section = 'build' | 'operate' | 'manage'

export type PageEntry = {
  readonly path: string
  readonly title: TextKey
  readonly icon: IconName
  /** Null: a link leads there, not the navigation. */
  readonly section: Section | null
  /** Without it the page is for everybody; the API decides in the end. */
  readonly permission?: Permission
  readonly load: () => Promise<FunctionComponent>
}

export const sections: readonly Section[] = ['build', 'operate', 'manage']

/** Every page of the console, in the order of the navigation. Each is loaded when first opened. */
export const pages: readonly PageEntry[] = [
  {
    path: '/',
    title: 'start.title',
    icon: 'start',
    section: 'build',
    load: async () => (await import('../pages/start/start-page.tsx')).StartPage,
  },
  {
    path: '/playground',
    title: 'playground.title',
    icon: 'playground',
    section: 'build',
    load: async () => (await import('../pages/playground/playground-page.tsx')).PlaygroundPage,
  },
  {
    path: '/models',
    title: 'models.title',
    icon: 'models',
    section: 'operate',
    load: async () => (await import('../pages/models/models-page.tsx')).ModelsPage,
  },
  {
    path: '/installer',
    title: 'installer.title',
    icon: 'download',
    section: 'operate',
    permission: 'can_manage_models',
    load: async () => (await import('../pages/installer/installer-page.tsx')).InstallerPage,
  },
  {
    path: '/usage',
    title: 'usage.title',
    icon: 'usage',
    section: 'operate',
    load: async () => (await import('../pages/usage/usage-page.tsx')).UsagePage,
  },
  {
    path: '/keys',
    title: 'keys.title',
    icon: 'keys',
    section: 'build',
    load: async () => (await import('../pages/keys/keys-page.tsx')).KeysPage,
  },
  {
    path: '/users',
    title: 'users.title',
    icon: 'users',
    section: 'manage',
    permission: 'can_manage_groups',
    load: async () => (await import('../pages/users/users-page.tsx')).UsersPage,
  },
  {
    path: '/groups',
    title: 'groups.title',
    icon: 'groups',
    section: 'manage',
    permission: 'can_manage_groups',
    load: async () => (await import('../pages/groups/groups-page.tsx')).GroupsPage,
  },
  {
    path: '/device',
    title: 'device.title',
    icon: 'keys',
    section: null,
    load: async () => (await import('../pages/device/device-page.tsx')).DevicePage,
  },
]
