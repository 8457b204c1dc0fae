"""Dates, times and durations as XML Schema has them: exact, any year, with or without a time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering
from typing import Final

DAY: Final = 86_400

_DATE = r"(-?(?:[1-9][0-9]{4,8}|[0-9]{4}))-([0-9]{2})-([0-9]{2})"
_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]{1,50})?)"
_ZONE = r"(Z|[+-][0-9]{2}:[0-9]{2})?"
_DATE_TIME_FORM = re.compile(f"{_DATE}T{_TIME}{_ZONE}")
_DATE_FORM = re.compile(_DATE + _ZONE)
_TIME_FORM = re.compile(_TIME + _ZONE)
_COUNT = "[0-9]{1,18}"
_DAY_TIME_FORM = re.compile(
    rf"(-)?P(?=.)(?:({_COUNT})D)?(?:T(?=.)(?:({_COUNT})H)?(?:({_COUNT})M)?(?:({_COUNT}(?:\.[0-9]{{1,50}})?)S)?)?"
)
_YEAR_MONTH_FORM = re.compile(rf"(-)?P(?=.)(?:({_COUNT})Y)?(?:({_COUNT})M)?")


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A dateTime, date or time: seconds since 1970 (a time: since midnight) on its own clock, and that clock's zone.

    Without a zone it is taken as UTC where it is compared.
    """

    local: Fraction
    zone: int | None = None

    @property
    def instant(self) -> Fraction:
        return self.local - 60 * (self.zone or 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moment) and self.instant == other.instant

    def __lt__(self, other: Moment) -> bool:
        return self.instant < other.instant

    def __hash__(self) -> int:
        return hash(self.instant)


def count_days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the proleptic Gregorian calendar, for any year."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def split_days(days: int) -> tuple[int, int, int]:
    """Year, month and day: the other way of `count_days`."""
    era, of_era = divmod(days + 719_468, 146_097)
    years = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    shifted = (5 * of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return years + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def days_of_month(year: int, month: int) -> int:
    after = (year + 1, 1) if month == 12 else (year, month + 1)
    return count_days(*after, 1) - count_days(year, month, 1)


def moment_at(micros: int) -> Moment:
    """The dateTime in UTC, from microseconds since 1970."""
    return Moment(Fraction(micros, 1_000_000), 0)


def read_date_time(text: str) -> Moment:
    found = _match(_DATE_TIME_FORM, text)
    days, seconds = _read_days(*found.group(1, 2, 3)), _read_clock(*found.group(4, 5, 6))
    return Moment(days * DAY + seconds, _read_zone(found[7]))


def read_date(text: str) -> Moment:
    found = _match(_DATE_FORM, text)
    return Moment(Fraction(_read_days(*found.group(1, 2, 3)) * DAY), _read_zone(found[4]))


def read_time(text: str) -> Moment:
    found = _match(_TIME_FORM, text)
    return Moment(_read_clock(*found.group(1, 2, 3)) % DAY, _read_zone(found[4]))


def read_day_time_duration(text: str) -> Fraction:
    """In seconds."""
    sign, *parts = _match(_DAY_TIME_FORM, text).groups()
    days, hours, minutes, seconds = (Fraction(part or 0) for part in parts)
    total = days * DAY + hours * 3600 + minutes * 60 + seconds
    return -total if sign else total


def read_year_month_duration(text: str) -> int:
    """In months."""
    sign, years, months = _match(_YEAR_MONTH_FORM, text).groups()
    total = int(years or 0) * 12 + int(months or 0)
    return -total if sign else total


def add_months(moment: Moment, months: int) -> Moment:
    """The same day of another month, or that month's last day where it has no such day."""
    days, seconds = divmod(moment.local, DAY)
    year, month, day = split_days(int(days))
    year, month = divmod(year * 12 + month - 1 + months, 12)
    day = min(day, days_of_month(year, month + 1))
    return Moment(count_days(year, month + 1, day) * DAY + seconds, moment.zone)


def show_date_time(moment: Moment) -> str:
    days, seconds = divmod(moment.local, DAY)
    return f"{_show_days(int(days))}T{_show_clock(seconds)}{_show_zone(moment.zone)}"


def show_date(moment: Moment) -> str:
    return _show_days(int(moment.local // DAY)) + _show_zone(moment.zone)


def show_time(moment: Moment) -> str:
    return _show_clock(moment.local) + _show_zone(moment.zone)


def show_day_time_duration(seconds: Fraction) -> str:
    minutes, rest = divmod(abs(seconds), 60)
    hours, minute = divmod(int(minutes), 60)
    days, hour = divmod(hours, 24)
    clock = "".join(
        f"{count}{unit}"
        for count, unit in ((hour, "H"), (minute, "M"), (_show_decimal(rest), "S"))
        if str(count) != "0"
    )
    shown = (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return ("-" if seconds < 0 else "") + "P" + (shown or "T0S")


def show_year_month_duration(months: int) -> str:
    years, rest = divmod(abs(months), 12)
    shown = (f"{years}Y" if years else "") + (f"{rest}M" if rest else "")
    return ("-" if months < 0 else "") + "P" + (shown or "0M")


def _match(form: re.Pattern[str], text: str) -> re.Match[str]:
    found = form.fullmatch(text)
    if found is None:
        raise ValueError("not in the lexical form of the type")
    return found


def _read_days(year: str, month: str, day: str) -> int:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= days_of_month(int(year), int(month))):
        raise ValueError("no such day")
    return count_days(int(year), int(month), int(day))


def _read_clock(hour: str, minute: str, second: str) -> Fraction:
    seconds = Fraction(second)
    if int(hour) == 24 and int(minute) == 0 and seconds == 0:
        return Fraction(DAY)
    if int(hour) > 23 or int(minute) > 59 or seconds >= 60:
        raise ValueError("no such time")
    return int(hour) * 3600 + int(minute) * 60 + seconds


def _read_zone(text: str | None) -> int | None:
    if text is None or text == "Z":
        return None if text is None else 0
    minutes = int(text[1:3]) * 60 + int(text[4:6])
    if int(text[4:6]) > 59 or minutes > 14 * 60:
        raise ValueError("no such time zone")
    return -minutes if text[0] == "-" else minutes


def _show_days(days: int) -> str:
    year, month, day = split_days(days)
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"


def _show_clock(seconds: Fraction) -> str:
    minutes, rest = divmod(seconds, 60)
    hour, minute = divmod(int(minutes), 60)
    shown = _show_decimal(rest)
    return f"{hour:02d}:{minute:02d}:{'0' if rest < 10 else ''}{shown}"


def _show_decimal(value: Fraction) -> str:
    """All digits: a fraction that was read has a power of ten below the line."""
    whole, rest = divmod(value, 1)
    digits = ""
    while rest:
        digit, rest = divmod(rest * 10, 1)
        digits += str(digit)
    return f"{whole}.{digits}" if digits else str(whole)


def _show_zone(zone: int | None) -> str:
    if zone is None or zone == 0:
        return "" if zone is None else "Z"
    hours, minutes = divmod(abs(zone), 60)
    return f"{'-' if zone < 0 else '+'}{hours:02d}:{minutes:02d}"
