CREATE TABLE "api_key" (
	"id" uuid PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"name" text NOT NULL,
	"hash" "bytea" NOT NULL,
	"masked" text NOT NULL,
	"expires_at" timestamp with time zone,
	"last_used_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "api_key_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "app_group" (
	"name" text PRIMARY KEY NOT NULL,
	"permissions" text[] NOT NULL
);
--> statement-breakpoint
CREATE TABLE "app_user" (
	"id" uuid PRIMARY KEY NOT NULL,
	"subject" text NOT NULL,
	"kind" text DEFAULT 'user' NOT NULL,
	"groups_seen_at_s" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "app_user_subject_unique" UNIQUE("subject"),
	CONSTRAINT "app_user_kind" CHECK ("app_user"."kind" in ('user', 'service'))
);
--> statement-breakpoint
CREATE TABLE "group_member" (
	"user_id" uuid NOT NULL,
	"group_name" text NOT NULL,
	"source" text NOT NULL,
	CONSTRAINT "group_member_user_id_group_name_source_pk" PRIMARY KEY("user_id","group_name","source"),
	CONSTRAINT "group_member_source" CHECK ("group_member"."source" in ('idp', 'manual'))
);
--> statement-breakpoint
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_user_id_app_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."app_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_member" ADD CONSTRAINT "group_member_user_id_app_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."app_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "api_key_user_id_id" ON "api_key" USING btree ("user_id","id");