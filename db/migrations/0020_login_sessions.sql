CREATE TABLE "login_code" (
	"hash" "bytea" PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"user_code" text,
	"name" text DEFAULT '' NOT NULL,
	"user_id" uuid,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"polled_at" timestamp with time zone,
	CONSTRAINT "login_code_user_code_unique" UNIQUE("user_code"),
	CONSTRAINT "login_code_kind" CHECK ("login_code"."kind" in ('start', 'device')),
	CONSTRAINT "login_code_status" CHECK ("login_code"."status" in ('pending', 'approved', 'denied'))
);
--> statement-breakpoint
CREATE TABLE "login_session" (
	"id" uuid PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"hash" "bytea" NOT NULL,
	"method" text NOT NULL,
	"user_agent" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"last_used_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"renew_at" timestamp with time zone,
	"refresh_token" text,
	"renewing_until" timestamp with time zone,
	"id_token" text,
	"provider_session" text,
	CONSTRAINT "login_session_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
ALTER TABLE "login_code" ADD CONSTRAINT "login_code_user_id_app_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."app_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "login_session" ADD CONSTRAINT "login_session_user_id_app_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."app_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "login_code_expires_at" ON "login_code" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "login_session_user_id_id" ON "login_session" USING btree ("user_id","id");--> statement-breakpoint
CREATE INDEX "login_session_expires_at" ON "login_session" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "login_session_provider_session" ON "login_session" USING btree ("provider_session");